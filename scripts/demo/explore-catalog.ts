// After the demo has connected: lists everything, and calls the built-in entries.
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';

type PrintLine = (line: string) => void;

export interface ExploreOptions {
  readonly printHeading: PrintLine;
  readonly printLine: PrintLine;
  readonly hasUser: boolean;
}

/** Calls nothing that is not listed: the gateway may have any catalogue. */
export async function exploreCatalog(
  client: Client,
  { printHeading, printLine, hasUser }: ExploreOptions,
): Promise<void> {
  const offers = client.getServerCapabilities() ?? {};
  let called = false;

  printHeading('Tools');
  const tools = offers.tools ? (await client.listTools()).tools : [];
  printLine(joinNames(tools));
  if (tools.some(({ name }) => name === 'service_ping')) {
    const ping = await client.callTool({ name: 'service_ping', arguments: { message: 'hello' } });
    printLine(JSON.stringify(ping.content));
    called = true;
  }

  printHeading('Prompts');
  const prompts = offers.prompts ? (await client.listPrompts()).prompts : [];
  printLine(joinNames(prompts));
  if (prompts.some(({ name }) => name === 'greeting')) {
    const greeting = await client.getPrompt({ name: 'greeting', arguments: { name: 'Ada' } });
    printLine(JSON.stringify(greeting.messages));
    called = true;
  }

  printHeading('Resources');
  const resources = offers.resources ? (await client.listResources()).resources : [];
  printLine(joinNames(resources));
  const listed = BUILT_IN.filter((uri) => resources.some((resource) => resource.uri === uri));
  for (const uri of listed) {
    called = true;
    if (uri === PROFILE && !hasUser) {
      printLine(`${uri} needs a user; this gateway runs without authentication.`);
      continue;
    }
    const { contents } = await client.readResource({ uri });
    for (const content of contents) printLine('text' in content ? content.text : content.uri);
  }
  if (!called)
    printLine('This gateway has a catalogue of its own; the demo calls built-in entries only.');
}

const PROFILE = 'user://profile';
const BUILT_IN = ['config://server', PROFILE];

const joinNames = (entries: readonly { readonly name: string }[]): string =>
  entries.length === 0 ? 'none' : entries.map(({ name }) => name).join(', ');
