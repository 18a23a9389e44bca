"""Do the tests notice? Small changes made on purpose, one at a time, against the tests of their own package."""
