"""Speed measured over HTTP, on this server and on any other that speaks OpenAI's chat completions."""
