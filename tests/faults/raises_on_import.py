"""A declaration that needs what nobody has."""

import a_module_that_nobody_has  # type: ignore[import-not-found]

KERNEL = a_module_that_nobody_has.KERNEL
