const KEYS = [
  ["Enter", "send; while a turn runs, queue"],
  ["Shift Enter", "start a new line"],
  ["Ctrl Enter", "steer the running turn"],
  ["Ctrl K", "go to a view or a session"],
  ["Tab, Shift Tab", "move between controls"],
  ["Space, Enter", "expand or collapse a tool call, a thought or an entry of the story"],
];
const COMMANDS = [
  ["/help", "list all commands"],
  ["/new", "start afresh in this session"],
  ["/status", "show the model, and what runs or waits"],
  ["/usage, /context", "show tokens and cost; show the size of the context"],
  ["/model [NAME]", "show the model, or switch to another"],
  ["/compact", "replace older messages with a summary"],
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
