"""The notify surface: schema-checked notifications, watched and replayed."""
