// The official clients, with and without elicitation by URL, in both eras, as connections meet them.
import { Client as Client2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  ElicitationCompleteNotificationSchema,
  ElicitRequestSchema,
  ToolListChangedNotificationSchema,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/sdk/types.js';
import {
  connect as connect1,
  createMemory as createMemory1,
  type Memory,
} from '../clients/sdk-1-client.ts';
import { connect as connect2, createMemory as createMemory2 } from '../clients/sdk-2-client.ts';
import { chooseCount } from '../tools/long-run.ts';

/** A question that leads to an address. */
export interface AskedUrl {
  readonly message: string;
  readonly url: string;
  readonly elicitationId: string | undefined;
}

export interface ConnectingClient {
  readonly memory: Memory;
  /** Questions that came, oldest first. */
  readonly asked: readonly AskedUrl[];
  /** IDs of questions that are told to be done with. */
  readonly completed: readonly string[];
  /** How often it was told that the tools have changed. */
  countListChanges(): number;
  listToolNames(): Promise<readonly string[]>;
  call(name: string, args?: Readonly<Record<string, unknown>>): Promise<CallResult>;
  close(): Promise<void>;
}

export interface CallResult {
  readonly isError: boolean;
  readonly text: string;
}

/** What the person does who is shown an address. */
export type OnUrl = (asked: AskedUrl) => Promise<'accept' | 'decline' | 'cancel'>;

/** What the person does who is shown a form. */
export type OnForm = (asked: AskedForm) => Promise<FormAnswer>;

export interface AskedForm {
  readonly message: string;
  /** What one may choose for `decision`. */
  readonly choices: readonly string[];
}

export interface FormAnswer {
  readonly action: 'accept' | 'decline' | 'cancel';
  readonly content?: { readonly [name: string]: string };
}

export interface ConnectingClientOptions {
  readonly person?: string;
  /** Undefined: the client cannot be asked by URL. */
  readonly onUrl?: OnUrl | undefined;
  /** Undefined: the client cannot be asked by a form. */
  readonly onForm?: OnForm | undefined;
  readonly fetch?: typeof fetch;
}

export interface ConnectingClientRow {
  readonly title: string;
  readonly era: 'session' | 'stateless';
  connect(url: URL, options?: ConnectingClientOptions): Promise<ConnectingClient>;
}

/** Both official clients, one in each era; in CI the second in both. */
export const CONNECTING_CLIENTS: readonly ConnectingClientRow[] = [
  { title: '1.32', era: 'session' as const, connect: connectClient1 },
  ...(['stateless', 'session'] as const).map(
    (era): ConnectingClientRow => ({
      title: era === 'session' ? '2.4' : '2.4 pinned to 2026-07-28',
      era,
      connect: (url, options) => connectClient2(url, era, options),
    }),
  ),
].slice(0, chooseCount(2, 3));

const CLIENT_INFO = { name: 'test', version: '1' };

type Asked = Pick<ConnectingClientOptions, 'onUrl' | 'onForm'>;

const canBeAsked = ({ onUrl, onForm }: Asked): boolean =>
  onUrl !== undefined || onForm !== undefined;

const capabilitiesOf = ({ onUrl, onForm }: Asked) => ({
  capabilities:
    onUrl === undefined && onForm === undefined
      ? {}
      : { elicitation: { ...(onUrl && { url: {} }), ...(onForm && { form: {} }) } },
});

/** What the person answers to a question of either kind. */
async function answer({ onUrl, onForm }: Asked, asked: AskedUrl[], params: unknown) {
  const { mode, message, requestedSchema } = params as {
    readonly mode?: string;
    readonly message: string;
    readonly requestedSchema?: {
      readonly properties?: { readonly decision?: { readonly enum?: readonly string[] } };
    };
  };
  if (mode !== 'url') {
    const choices = requestedSchema?.properties?.decision?.enum ?? [];
    return { ...(await onForm?.({ message, choices })) } as FormAnswer;
  }
  asked.push(toAsked(params));
  return { action: (await onUrl?.(toAsked(params))) ?? 'cancel' };
}

const readResult = ({ content, isError }: Readonly<Record<string, unknown>>): CallResult => ({
  isError: isError === true,
  text: Array.isArray(content) ? content.map((part) => String(part.text)).join('\n') : '',
});

const toAsked = (params: unknown): AskedUrl => {
  const asked = params as { message?: unknown; url?: unknown; elicitationId?: string };
  return {
    message: String(asked.message),
    url: String(asked.url),
    elicitationId: asked.elicitationId,
  };
};

async function connectClient1(
  url: URL,
  { person = 'ada', onUrl, onForm, fetch }: ConnectingClientOptions = {},
): Promise<ConnectingClient> {
  const memory = createMemory1();
  const asked: AskedUrl[] = [];
  const completed: string[] = [];
  let listChanges = 0;
  const { client } = await connect1(url, memory, person, {
    newClient() {
      const created = new Client(CLIENT_INFO, capabilitiesOf({ onUrl, onForm }));
      if (canBeAsked({ onUrl, onForm })) {
        created.setRequestHandler(ElicitRequestSchema, async ({ params }) => ({
          ...(await answer({ onUrl, onForm }, asked, params)),
        }));
      }
      created.setNotificationHandler(ElicitationCompleteNotificationSchema, ({ params }) => {
        completed.push(params.elicitationId);
      });
      created.setNotificationHandler(ToolListChangedNotificationSchema, () => {
        listChanges += 1;
      });
      return created;
    },
    ...(fetch && { fetch }),
  });

  /** MCP 2025-11-25: whoever gets -32042 opens the addresses and asks again. */
  async function call(name: string, args: Readonly<Record<string, unknown>> = {}) {
    const params = { name, arguments: args };
    try {
      return readResult(await client.callTool(params));
    } catch (error) {
      if (!(error instanceof UrlElicitationRequiredError) || onUrl === undefined) throw error;
      for (const elicitation of error.elicitations) {
        asked.push(toAsked(elicitation));
        await onUrl(toAsked(elicitation));
      }
      return readResult(await client.callTool(params));
    }
  }

  return {
    memory,
    asked,
    completed,
    countListChanges: () => listChanges,
    listToolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
    call,
    close: () => client.close(),
  };
}

async function connectClient2(
  url: URL,
  era: 'session' | 'stateless',
  { person = 'ada', onUrl, onForm, fetch }: ConnectingClientOptions = {},
): Promise<ConnectingClient> {
  const memory = createMemory2();
  const asked: AskedUrl[] = [];
  const completed: string[] = [];
  let listChanges = 0;
  const { client } = await connect2(url, memory, undefined, {
    name: person,
    newClient() {
      const created = new Client2(CLIENT_INFO, {
        ...capabilitiesOf({ onUrl, onForm }),
        ...(era === 'stateless' && { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
      });
      if (canBeAsked({ onUrl, onForm })) {
        created.setRequestHandler('elicitation/create', async ({ params }) => ({
          ...(await answer({ onUrl, onForm }, asked, params)),
        }));
      }
      created.setNotificationHandler('notifications/elicitation/complete', ({ params }) => {
        completed.push(params.elicitationId);
      });
      created.setNotificationHandler('notifications/tools/list_changed', () => {
        listChanges += 1;
      });
      return created;
    },
    ...(fetch && { fetch }),
  });
  return {
    memory,
    asked,
    completed,
    countListChanges: () => listChanges,
    listToolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args = {}) =>
      readResult(await client.callTool({ name, arguments: { ...args } })),
    close: () => client.close(),
  };
}
