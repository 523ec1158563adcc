import type { Attachment } from "../../protocol/types";

/** What one message may hold; the gateway takes 20 MB, and base64 makes a third more of it. */
const MAX_BYTES = 14_000_000;
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** The files as attachments: pictures and PDF documents as they are, anything else if it is text. */
export async function readFiles(files: File[]): Promise<Attachment[]> {
  const size = files.reduce((sum, file) => sum + file.size, 0);
  if (size > MAX_BYTES) throw new Error(`Attach at most ${MAX_BYTES / 1_000_000} MB to a message.`);
  return Promise.all(files.map(readFile));
}

async function readFile(file: File): Promise<Attachment> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const name = file.name || "pasted";
  if (PICTURES.has(file.type)) return { type: "image", media_type: file.type, data: base64(bytes), name };
  if (file.type === "application/pdf")
    return { type: "document", media_type: file.type, data: base64(bytes), name };
  if (!isText(bytes)) throw new Error(`${name} is neither a picture, a PDF document nor text.`);
  return { type: "document", media_type: "text/plain", data: base64(bytes), name };
}

export function isText(bytes: Uint8Array): boolean {
  try {
    return !new TextDecoder("utf-8", { fatal: true }).decode(bytes).includes("\0");
  } catch {
    return false;
  }
}

export function base64(bytes: Uint8Array): string {
  const CHUNK = 0x8000;
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) {
    text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  }
  return btoa(text);
}
