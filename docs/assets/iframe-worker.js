// Browsers start no worker for a page that was opened from disk: there, the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      const element = document.createElement("iframe")
      element.hidden = true
      document.body.append(element)
      const frame = (this.frame = element.contentWindow)
      frame.document.open() // so that the browser doesn't load an empty document later
      frame.document.write("<body></body>")
      frame.document.close()

      const load = (source) =>
        new Promise((loaded, failed) => {
          const script = frame.document.createElement("script")
          script.src = new URL(source, location.href)
          script.onload = loaded
          script.onerror = failed
          frame.document.body.append(script)
        })
      frame.importScripts = async (...sources) => {
        for (const source of sources) await load(source)
      }
      frame.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.ready = load(url)
    }

    async postMessage(data) {
      await this.ready
      this.frame.dispatchEvent(new MessageEvent("message", { data }))
    }
  }
}
