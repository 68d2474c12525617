"""The commands: each parses, calls the library, prints, and maps errors to exit statuses."""
