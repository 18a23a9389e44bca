"""What a person did wrong, said in one sentence."""


class InputError(ValueError):
    """Input that cannot be used: a file, an option, a tensor.

    The message is one sentence for the person who gave the input: what is wrong, where (file, row, argument),
    and what would be right. The command line prints it and exits with code 2.
    """
