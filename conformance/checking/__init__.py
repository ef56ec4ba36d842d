"""One case on ndarrays and on distributed arrays: what it is run on, what is compared, and how a run of cases went."""
