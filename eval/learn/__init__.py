"""Learning from judgments: weights of an estimator's inputs, fitted to people's scores."""
