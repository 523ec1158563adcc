import { useState } from "preact/hooks";
import { app } from "../../store/app";
import { CopyButton } from "../../ui/CopyButton";

/** A link that signs in one more browser, once. */
export function Device() {
  const [link, setLink] = useState("");
  const make = () =>
    app.attempt(async () => {
      const { code } = await app.client.post<{ code: string }>("/api/sign-in-links");
      setLink(`${location.origin}/#sign-in=${code}`);
    });
  return (
    <>
      <p>
        The link works once, within five minutes. Send it only to your own device: whoever opens it can do
        everything that you can.
      </p>
      <div class="answers">
        <button type="button" class="primary" onClick={make}>
          Create a link
        </button>
        <button type="button" onClick={() => app.attempt(() => app.signOut())}>
          Sign out here
        </button>
      </div>
      {link && (
        <p class="command-line">
          <code>{link}</code> <CopyButton text={link} />
        </p>
      )}
    </>
  );
}
