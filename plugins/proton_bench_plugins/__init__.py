"""The backends that come with proton_bench, one package each."""
