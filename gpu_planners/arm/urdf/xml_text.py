"""XML of robot descriptions: files and texts -> elements, numbers and names of elements, checked."""

import os

import numpy as np
from lxml import etree

from ...errors import RobotDescriptionError, shown
from ...files import LONGEST_SCALAR, read_file

XACRO_LEFT_OVER = "xacro:property", "xacro:arg"  # these only give values to xacro; a macro's call stands for links


def read_xml_file(path: str | os.PathLike, what: str) -> str:
    """Text of an XML file in UTF-8, or else in Latin-1: ROS takes any byte in comments and names."""
    content = read_file(path, f"the {what}", RobotDescriptionError)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if b"\0" in content:
            raise RobotDescriptionError(
                f"the {what} {shown(str(path))} cannot be read: it is not UTF-8 text: {error}"
            ) from error
        return content.decode("latin-1")


def parse_xml(text: str, what: str) -> etree._Element:
    """Root element of an XML text, its default namespace dropped. Entities and malformed XML are errors."""
    if "<!ENTITY" in text:  # libxml2 expands them in attributes, to gigabytes
        raise RobotDescriptionError(f"the {what} declares an XML entity (<!ENTITY ...>): write its text out")
    # without huge_tree libxml2 bounds depth and lengths; utf-8 is what str.encode makes, whatever the text declares
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, remove_comments=True, encoding="utf-8", recover=True
    )
    try:
        root = etree.fromstring(text.encode(), parser)
    except (etree.XMLSyntaxError, UnicodeEncodeError) as error:
        raise RobotDescriptionError(f"the {what} is not well-formed XML: {error}") from error
    for error in parser.error_log.filter_from_fatals():  # ROS takes undeclared prefixes and <?xml version="0.0"?>, too
        if error.type_name != "ERR_UNKNOWN_VERSION":
            raise RobotDescriptionError(
                f"the {what} is not well-formed XML: {error.message.strip()}, line {error.line}, column {error.column}"
            )
    if root is None:  # nothing of what follows <?xml version="2.0"?> was understood
        raise RobotDescriptionError(f"the {what} is not well-formed XML: it has no root element")
    for element in root.iter(etree.Element):
        namespace, _, name = element.tag.rpartition("}")
        if namespace and element.prefix is None:
            element.tag = name
    if root.tag != "robot":
        raise RobotDescriptionError(f"the {what}'s root element must be <robot>, got <{root.tag}>")
    return root


def unexpanded(element: etree._Element) -> str:
    """The name of an element that xacro should have expanded, "" for any other."""
    namespace, _, name = element.tag.rpartition("}")  # a prefix that is not declared is a part of the name
    if "xacro" not in namespace and not name.startswith("xacro:"):
        return ""
    tag = f"xacro:{name.removeprefix('xacro:')}"
    return "" if tag in XACRO_LEFT_OVER else tag


def refuse_xacro(root: etree._Element, what: str) -> None:
    """RobotDescriptionError for the first element below one that xacro should have expanded."""
    for element in root.iter(etree.Element):
        if tag := unexpanded(element):
            raise RobotDescriptionError(
                f"the {what} has <{tag}> in line {element.sourceline}: expand it with xacro first"
            )


def numbers(text: str, count: int, what: str, greatest: float = np.inf) -> np.ndarray:
    """(count,) finite numbers of an attribute's text, none beyond +-greatest."""
    try:
        values = np.array([float(word) for word in text.replace(",", " ").split()])
    except ValueError:
        values = np.zeros(0)
    if len(values) != count or not np.isfinite(values).all():
        raise RobotDescriptionError(f"{what}: expected {count} finite number{'s' * (count > 1)}, got {shown(text)}")
    if (np.abs(values) > greatest).any():
        raise RobotDescriptionError(f"{what}: numbers must be within +-{greatest:g}, got {shown(text)}")
    return values


def required(element: etree._Element, attribute: str, what: str) -> str:
    """The text of an attribute, not empty."""
    value = element.get(attribute)
    if not value:
        raise RobotDescriptionError(f"{what} in line {element.sourceline} has no attribute '{attribute}'")
    if len(value) > LONGEST_SCALAR:
        raise RobotDescriptionError(
            f"{what} in line {element.sourceline}: the attribute '{attribute}' has "
            f"{len(value)} characters; allowed: {LONGEST_SCALAR}"
        )
    return value
