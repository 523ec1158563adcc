import { isPicture } from "../../markdown/parse";
import type { Document, Image } from "../../protocol/types";

/** Attachments: pictures as they are, anything else by its name. */
export function Files({ files }: { files: (Image | Document | string)[] }) {
  if (!files.length) return null;
  return (
    <ul class="files">
      {files.map((file, index) => (
        <li key={`${index}`}>
          {typeof file === "string" ? file : file.type === "image" ? <Picture file={file} /> : file.name}
        </li>
      ))}
    </ul>
  );
}

function Picture({ file }: { file: Image }) {
  const url = `data:${file.media_type};base64,${file.data.replaceAll("-", "+").replaceAll("_", "/")}`;
  return isPicture(url) ? <img src={url} alt="Attached" /> : <>Picture ({file.media_type})</>;
}
