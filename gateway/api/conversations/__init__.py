"""`/v1/conversations`, `/v1/facts` and `/v1/tasks`."""
