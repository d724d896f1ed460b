// What the demo does once it is connected: lists all, and calls the built-in entries.
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';

type Say = (line: string) => void;

export interface LookOptions {
  readonly heading: Say;
  readonly say: Say;
  readonly hasUser: boolean;
}

/** Calls nothing that is not listed: behind the gateway may stand any catalogue. */
export async function look(client: Client, { heading, say, hasUser }: LookOptions): Promise<void> {
  const offers = client.getServerCapabilities() ?? {};
  let called = false;

  heading('Tools');
  const tools = offers.tools ? (await client.listTools()).tools : [];
  say(names(tools));
  if (tools.some(({ name }) => name === 'service_ping')) {
    const ping = await client.callTool({ name: 'service_ping', arguments: { message: 'hello' } });
    say(JSON.stringify(ping.content));
    called = true;
  }

  heading('Prompts');
  const prompts = offers.prompts ? (await client.listPrompts()).prompts : [];
  say(names(prompts));
  if (prompts.some(({ name }) => name === 'greeting')) {
    const greeting = await client.getPrompt({ name: 'greeting', arguments: { name: 'Ada' } });
    say(JSON.stringify(greeting.messages));
    called = true;
  }

  heading('Resources');
  const resources = offers.resources ? (await client.listResources()).resources : [];
  say(names(resources));
  const listed = BUILT_IN.filter((uri) => resources.some((resource) => resource.uri === uri));
  for (const uri of listed) {
    called = true;
    if (uri === PROFILE && !hasUser) {
      say(`${uri} needs a user; this gateway runs without authentication.`);
      continue;
    }
    const { contents } = await client.readResource({ uri });
    for (const content of contents) say('text' in content ? content.text : content.uri);
  }
  if (!called)
    say('This gateway has a catalogue of its own; the demo calls built-in entries only.');
}

const PROFILE = 'user://profile';
const BUILT_IN = ['config://server', PROFILE];

const names = (entries: readonly { readonly name: string }[]): string =>
  entries.length === 0 ? 'none' : entries.map(({ name }) => name).join(', ');
