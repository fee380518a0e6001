"""`python -m solkit` is `solkit`."""

from solkit.cli.main import main

if __name__ == "__main__":
    main()
