"""Memory that will be needed is fetched ahead: CPU only."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def prefetch(context, array, i):
    """Fetch array[i], which is written soon, while other work goes on. i: uint64; it may lie outside the array."""

    def build(context, builder, signature, arguments):
        kind = signature.args[0]
        struct = context.make_array(kind)(context, builder, value=arguments[0])
        at = cgutils.get_item_pointer(context, builder, kind, struct, [arguments[1]], wraparound=False)
        word, at = ir.IntType(32), builder.bitcast(at, ir.IntType(8).as_pointer())
        declared = ir.FunctionType(ir.VoidType(), [at.type, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [at.type], declared)
        to_write, keep, data = 1, 3, 1
        builder.call(fetch, [at, word(to_write), word(keep), word(data)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), build
