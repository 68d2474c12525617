"""The commands: each parses, calls the library, prints, and maps errors to exit statuses."""

import gc

# A command is one short run: looking for garbage while its modules load only costs time. run() turns it on again.
gc.disable()
