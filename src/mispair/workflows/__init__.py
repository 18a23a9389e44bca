"""What each verb does, once: train, finish, evaluate, audit, report, demo."""
