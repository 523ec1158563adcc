import { app } from "../store/app";
import { useStore } from "../store/store";
import { CopyButton } from "../ui/CopyButton";

/** Shown to a browser without a valid cookie: how to get one. */
export function SignIn() {
  const error = useStore(app.state, (state) => state.accessError);
  return (
    <main class="center">
      <div class="card sign-in">
        <span class="logo" aria-hidden="true">
          D
        </span>
        <h1>Sign in with a link</h1>
        {error && (
          <p class="note error" role="alert">
            {error}
          </p>
        )}
        <p>On the machine where Denizen runs, this command opens the page and prints a one-time link:</p>
        <p class="command-line">
          <code>denizen web</code> <CopyButton text="denizen web" />
        </p>
        <p class="hint">For a phone: sign in here first, then choose “Link for another device” under More.</p>
      </div>
    </main>
  );
}
