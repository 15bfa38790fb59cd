// Pages without charts only switch between light and dark.

setUpTheme();
document.documentElement.dataset.ready = "true";
