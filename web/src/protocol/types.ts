/** What the gateway's routes take and give. Those of the description are in openapi.ts, which is generated. */
import type * as api from "./openapi";

export type Entry =
  | api.SessionEntry
  | api.UserEntry
  | api.AssistantEntry
  | api.StartedEntry
  | api.ToolEntry
  | api.CompactionEntry
  | api.NoteEntry
  | api.CheckpointEntry
  | api.StateEntry
  | api.SystemEntry
  | api.ParkedEntry
  | api.AnswerEntry
  | api.HeadEntry
  | api.EndEntry;

export type EventFrame = api.EventFrame;
export type RunEvent = EventFrame["event"];
export type {
  AssistantMessage,
  Document,
  EndEntry,
  EntryPage,
  Image,
  SessionInfo,
  SessionPage,
  Text,
  ToolCall,
  ToolResult,
  Usage,
  UserMessage,
} from "./openapi";
export type QueuedMessage = Required<api.QueuedMessage>;

export interface Reply {
  seq: number;
  in_reply_to: string;
  content: string;
  session_key: string;
  state: string;
}

export type Pairing = Required<api.Pairing>;
export type Question = Required<api.WaitingQuestion>;
export type Waiting = { questions: Question[]; pairings: Pairing[] };
export type Found = Required<api.FoundSession>;

export interface UndoPreview {
  said: string;
  paths: string[];
  diff: string;
  conflicts: string[];
}

export type UsageRow = Required<api.UsageRow>;
export type UsageTable = Omit<api.UsageReport, "rows"> & { rows: UsageRow[] };

export interface Attachment {
  type: "image" | "document";
  media_type: string;
  data: string;
  name: string;
}

export interface ContextView {
  parts: { message: number; role: string; kind: string; characters: number; tokens: number; text: string }[];
  tokens: number;
}
