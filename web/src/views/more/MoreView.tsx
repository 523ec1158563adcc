import { addressOf } from "../../store/router";
import { A } from "../../ui/A";
import { Device } from "./Device";
import { Help } from "./Help";
import { LISTS, ListView } from "./ListView";

/** Everything else: status, jobs, people, other devices, and help. */
export function MoreView({ name }: { name: string }) {
  const list = LISTS[name];
  return (
    <section class="view page">
      <header class="view-header">
        <h1>{list?.title ?? (name === "help" ? "Help" : name === "device" ? "Another device" : "More")}</h1>
        {name && <A to="/more">Back to More</A>}
      </header>
      {list ? (
        <ListView key={name} name={name} list={list} />
      ) : name === "help" ? (
        <Help />
      ) : name === "device" ? (
        <Device />
      ) : (
        <Index />
      )}
    </section>
  );
}

function Index() {
  const places = [
    ...Object.entries(LISTS).map(([name, { title, about }]) => ({ name, title, about })),
    { name: "device", title: "Link for another device", about: "Open this page on a phone" },
    { name: "help", title: "Help", about: "Keys and commands" },
  ];
  return (
    <ul class="list cards">
      {places.map(({ name, title, about }) => (
        <li key={name}>
          <A to={addressOf("more", name)}>
            <strong>{title}</strong>
            <span class="facts">{about}</span>
          </A>
        </li>
      ))}
    </ul>
  );
}
