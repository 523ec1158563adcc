import { useMemo } from "preact/hooks";
import { CopyButton } from "../ui/CopyButton";
import { Diff } from "../ui/Diff";
import { highlight } from "./highlight";

/** A block of code, with its language and a button that copies it. */
export function Code({ text, language }: { text: string; language: string }) {
  const code = text.replace(/\n$/, "");
  if (language === "diff" || language === "patch") return <Diff text={code} />;
  return (
    <figure class="code">
      <figcaption>
        <span>{language || "text"}</span>
        <CopyButton text={code} />
      </figcaption>
      <pre tabIndex={0} role="group" aria-label="Code" dir="ltr">
        <Spans code={code} language={language} />
      </pre>
    </figure>
  );
}

export function Spans({ code, language }: { code: string; language: string }) {
  const spans = useMemo(() => highlight(code, language), [code, language]);
  return (
    <code>
      {spans.map(({ scope, text }, index) =>
        scope ? (
          <span key={`${index}`} class={`hl-${scope.split(".")[0]}`}>
            {text}
          </span>
        ) : (
          text
        ),
      )}
    </code>
  );
}
