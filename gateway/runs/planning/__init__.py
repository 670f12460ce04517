"""Steps of tasks: from lines, from words, or by a model. Imports `memory` and `store`."""
