"""Programs that use the gateway over HTTP. They import neither `gateway` nor `model_host`."""
