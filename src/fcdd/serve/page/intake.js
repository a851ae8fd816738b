// Where images come from: files, folders, the clipboard, the camera.

import { find, notice, plural } from "./elements.js";

const IMAGE = /\.(png|jpe?g|bmp|tiff?|webp|gif|pgm|ppm|pnm)$/i;
const isImage = (file) => file.type.startsWith("image/") || IMAGE.test(file.name);

const named = (file, name) => ({ file, name: name || file.webkitRelativePath || file.name || "pasted image" });

// A dropped folder is read to its last level; a browser gives its entries in portions.
async function walk(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [named(file, entry.fullPath.replace(/^\//, ""))];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const portion = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!portion.length) return found;
    for (const inner of portion) found.push(...(await walk(inner)));
  }
}

async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => named(file));
  return (await Promise.all(entries.map(walk))).flat();
}

export function watch(take) {
  const offer = (images) => {
    const visible = images.filter(({ name }) => !name.split("/").pop().startsWith("."));
    const usable = visible.filter(({ file }) => isImage(file));
    const left = visible.length - usable.length;
    usable.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
    notice(left ? `${plural(left, "file")} left out: not an image.` : "");
    if (usable.length) take(usable);
  };
  for (const [button, input] of [["choose-files", "files"], ["choose-folder", "folder"]]) {
    find(button).addEventListener("click", () => find(input).click());
  }
  find("choose-folder").hidden = !("webkitdirectory" in find("folder"));
  for (const id of ["files", "folder", "capture"]) {
    find(id).addEventListener("change", () => {
      offer([...find(id).files].map((file) => named(file)));
      find(id).value = "";
    });
  }
  watchDrops(offer);
  addEventListener("paste", (event) => offer([...event.clipboardData.files].map((file) => named(file))));
  watchCamera(offer);
}

function watchDrops(offer) {
  addEventListener("dragover", (event) => {
    event.preventDefault();
    find("stage").classList.add("over-it");
  });
  for (const kind of ["dragleave", "drop"]) {
    addEventListener(kind, (event) => {
      if (kind === "drop" || !event.relatedTarget) find("stage").classList.remove("over-it");
    });
  }
  addEventListener("drop", async (event) => {
    event.preventDefault();
    try {
      offer(await dropped(event.dataTransfer));
    } catch {
      notice("The folder could not be read. Choose it by the button instead.");
    }
  });
}

function watchCamera(offer) {
  const dialog = find("camera");
  const video = find("video");
  find("open-camera").addEventListener("click", async () => {
    // Browsers give pages the camera over https and on this machine only; phones still offer their own camera.
    if (!navigator.mediaDevices?.getUserMedia) {
      find("capture").click();
      return;
    }
    try {
      video.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment", width: 1920 } });
      dialog.showModal();
    } catch (error) {
      notice(error.name === "NotAllowedError" ? "The browser was not allowed to use the camera." : "No camera was found.");
    }
  });
  find("close-camera").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    for (const track of video.srcObject?.getTracks() ?? []) track.stop();
    video.srcObject = null;
  });
  find("take").addEventListener("click", () => {
    const canvas = document.createElement("canvas");
    canvas.width = video.videoWidth;
    canvas.height = video.videoHeight;
    canvas.getContext("2d").drawImage(video, 0, 0);
    const time = new Date().toLocaleTimeString("en-GB");
    canvas.toBlob((blob) => offer([named(new File([blob], "camera.png", { type: "image/png" }), `camera ${time}`)]));
    dialog.close();
  });
}
