const KEYS = [
  ["Enter", "send; while a turn runs, queue"],
  ["Shift Enter", "a new line"],
  ["Ctrl Enter", "steer the running turn"],
  ["Ctrl K", "go to a view or a session"],
  ["Tab, Shift Tab", "move between everything that can be used"],
  ["Space, Enter", "open and close a tool call, a thought, a line of the story"],
];
const COMMANDS = [
  ["/help", "all commands"],
  ["/new", "start afresh in this session"],
  ["/status", "the model, and what runs or waits"],
  ["/usage, /context", "tokens and cost; the size of the context"],
  ["/model [NAME]", "the model, or another one from now on"],
  ["/compact", "a summary replaces older messages"],
];

export function Help() {
  return (
    <>
      <h2>Keys</h2>
      <Pairs pairs={KEYS} />
      <h2>Commands</h2>
      <p>Send one as a message.</p>
      <Pairs pairs={COMMANDS} />
    </>
  );
}

function Pairs({ pairs }: { pairs: string[][] }) {
  return (
    <dl class="arguments">
      {pairs.map(([name, words]) => (
        <div key={name}>
          <dt>
            <kbd>{name}</kbd>
          </dt>
          <dd>{words}</dd>
        </div>
      ))}
    </dl>
  );
}
