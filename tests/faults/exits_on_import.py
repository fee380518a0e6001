"""A declaration that is a script, and ends like one."""

import sys

sys.exit("usage: exits_on_import.py FILE")
