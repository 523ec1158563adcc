import { render } from "preact";
import { app } from "./store/app";
import { startRouter } from "./store/router";
import "./styles/page.css";
import { Shell } from "./views/Shell";

startRouter();
render(<Shell />, document.getElementById("page")!);
void app.start();
