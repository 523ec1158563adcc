/** Session keys in people's words: `agent:<id>:channel:<name>:account:<id>:peer:<kind>:<id>`. */

const KEY = /^agent:([^:]*):channel:([^:]*):account:([^:]*):peer:([^:]*):(.*)$/;

export interface Place {
  channel: string;
  kind: string;
  chat: string;
}

export function placeOf(key: string): Place {
  const [, , channel = "", , kind = "", chat = key] = KEY.exec(key) ?? [];
  return { channel, kind, chat: unescaped(chat) };
}

/** The chat that messages of the page are posted to; undefined for sessions of other channels. */
export function chatOf(key: string): string | undefined {
  const { channel, kind, chat } = placeOf(key);
  return channel === "http" && kind === "direct" ? chat : undefined;
}

export function keyOfChat(chat: string): string {
  return `agent:main:channel:http:account:default:peer:direct:${chat}`;
}

export function newChat(now: number, random: number): string {
  return `page-${now.toString(36)}-${Math.floor(random * 36 ** 4).toString(36)}`;
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const CHANNEL_WORDS: Record<string, string> = { http: "Page or API", cli: "Terminal", "": "Other" };

export function channelWords(channel: string): string {
  return CHANNEL_WORDS[channel] ?? channel.charAt(0).toUpperCase() + channel.slice(1);
}
