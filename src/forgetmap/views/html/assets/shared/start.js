// Pages whose charts are all described as data need no more than this.

drawAll = drawDescribed;
setUpTheme();
loadPlotly().then(() => {
  drawAll();
  document.documentElement.dataset.ready = "true";
});
