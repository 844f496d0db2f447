"""Sphinx reads this: `make docs` builds the site into out/docs.

With SITE_RUNS="" nothing of the tutorials and the gallery is run: their pages have no pictures, and seconds are enough.
"""

import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path

from sphinx_gallery.scrapers import figure_rst

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]

from gpu_planners import __version__  # noqa: E402

project, release, copyright = "gpu_planners", __version__, "the gpu_planners maintainers, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_gallery.gen_gallery", "sphinx_copybutton", "reference"]
exclude_patterns = ["reference/*.inc", "**/GALLERY_HEADER.rst", "sg_execution_times.rst", "**/sg_execution_times.rst"]
default_role = "code"
nitpicky = False

html_theme = "furo"
html_title = f"gpu_planners {release}"
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence"]
copybutton_exclude = ".linenos, .gp"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
maximum_signature_line_length = 100

EXAMPLES = HERE.parent / "examples"
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # for `gpu-planners`
os.environ.setdefault("PROBLEMS", "2000")  # of the data set's tutorial, which makes 100,000


def runs(file):
    """Are all modules there that the script needs beyond those that extras bring?"""
    needs = re.findall(r"^# needs: (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return all(importlib.util.find_spec(name) for line in needs for name in line.split())


# {file: when it was written} of what examples have written before this block
SEEN = {file: file.stat().st_mtime_ns for file in EXAMPLES.glob("*/out/*")}


def written_files(block, block_vars, gallery_conf):
    """-> reStructuredText that shows what the block has written into out/: pictures, animations and pages."""
    folder = Path(block_vars["src_file"]).parent / "out"
    now = {
        file: file.stat().st_mtime_ns
        for file in sorted(folder.glob("*"), key=lambda file: (file.suffix != ".png", file))
    }
    pictures, frames = [], []
    for file in (file for file, time in now.items() if SEEN.get(file) != time):
        if file.suffix in (".png", ".gif"):
            pictures.append(Path(next(block_vars["image_path_iterator"])).with_suffix(file.suffix))
            shutil.copy(file, pictures[-1])
        elif file.suffix == ".html":
            pages = Path(gallery_conf["src_dir"], "extra/pages")
            pages.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, pages / file.name)
            frame = f'<iframe src="../pages/{file.name}" title="{file.stem}" loading="lazy"></iframe>'
            frames.append(f".. raw:: html\n\n    {frame}\n\n")
    SEEN.update(now)
    return figure_rst([str(file) for file in pictures], gallery_conf["src_dir"]) + "".join(frames)


ready = [file.stem for file in sorted(EXAMPLES.rglob("[0-9]*.py")) if runs(file)]
sphinx_gallery_conf = {
    "examples_dirs": [str(EXAMPLES / "tutorials"), str(EXAMPLES / "gallery")],
    "gallery_dirs": ["tutorials", "gallery"],
    "filename_pattern": rf"/(?:{'|'.join(ready)})\.py$",
    "plot_gallery": os.environ.get("SITE_RUNS", "1") != "",
    "image_scrapers": (written_files,),
    "capture_repr": (),  # what is printed is shown, not what a block's last line returns
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "reset_modules": (),
    "abort_on_example_error": True,
}
(HERE / "extra").mkdir(exist_ok=True)  # pages that examples write
html_extra_path = ["extra"]
html_css_files = ["site.css"]
html_static_path = ["static"]
suppress_warnings = ["config.cache"]  # of functions in sphinx_gallery_conf
