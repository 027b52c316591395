"""The study: one TOML file that says what to identify, run from files to a result."""
