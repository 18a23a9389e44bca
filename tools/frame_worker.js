// Search of the documentation when it is opened from a disk: a page there may start no worker, so a hidden frame does its work.
// The theme's search asks for `IFrameWorker` by name, and finds its own folder by the first script of the frame.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.waiting = [];
      frame.srcdoc = "<!doctype html><title>search</title>";
      frame.onload = () => this.start(frame.contentWindow, new URL(url, location.href).href);
      document.body.appendChild(frame);
    }
    start(inner, url) {
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inner.importScripts = async (...sources) => {
        for (const source of sources) await this.load(inner, source);
      };
      this.load(inner, url).then(() => {
        this.inner = inner;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }
    load(inner, source) {
      return new Promise((resolve, reject) => {
        const script = inner.document.createElement("script");
        Object.assign(script, { src: source, onload: resolve, onerror: reject });
        inner.document.head.appendChild(script);
      });
    }
    postMessage(data) {
      if (this.inner) this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }));
      else this.waiting.push(data);
    }
    terminate() {}
  }
  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
