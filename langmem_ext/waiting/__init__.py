"""The waiting-for-param graph: classify, ask the user, wait, continue where it stopped."""
