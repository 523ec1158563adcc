import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import { defineConfig } from "vite";

/** Writes NAME.br next to each asset: the gateway serves it to browsers that take it. */
function precompressed() {
  return {
    name: "precompressed",
    apply: "build",
    writeBundle({ dir }, bundle) {
      for (const name of Object.keys(bundle).filter((each) => /\.(js|css|svg)$/.test(each))) {
        const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
        writeFileSync(join(dir, `${name}.br`), brotliCompressSync(readFileSync(join(dir, name)), { params }));
      }
    },
  };
}

const IN = "node_modules/";

export default defineConfig({
  base: "/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  plugins: [precompressed()],
  build: {
    outDir: "../src/denizen/worlds/chat/http/page",
    emptyOutDir: true,
    assetsDir: "assets",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            {
              name: "markdown",
              test: new RegExp(`${IN}(markdown-it|linkify-it|mdurl|uc\\.micro|punycode|entities)`),
            },
            { name: "highlight", test: new RegExp(`${IN}highlight\\.js`) },
            { name: "charts", test: new RegExp(`${IN}uplot`) },
          ],
        },
      },
    },
  },
});
