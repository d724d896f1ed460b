// `postern connect`: explains how to add the gateway to an MCP client.

import { styleText } from 'node:util';
import {
  ALL_CLIENT_SETUPS,
  type ClientSetup,
  DEFAULT_ENTRY_NAME,
  type GatewayEntry,
} from '../pages/client-setups.ts';
import { escapeInvisible } from '../platform/invisible.ts';
import type { Flags, Invocation, Texts } from './command-line/invocation.ts';
import { readEnvFile } from './command-line/read-input.ts';
import { alignColumns } from './command-line/terminal.ts';

/** `client`: the `id` of a setup; undefined lists all. `url`: the public address, with or without `/mcp`. */
export function runConnect(
  {
    client,
    view,
    name = [DEFAULT_ENTRY_NAME, view].filter(Boolean).join('-'),
    url,
    json,
  }: Texts<'client' | 'url' | 'view' | 'name'> & Flags<'json'>,
  { process, console }: Invocation,
): void {
  // The address may come from someone else's .env, so terminal control characters are escaped.
  const address = escapeInvisible(url ?? readBaseUrl(process.env));
  const path = view === undefined ? '/mcp' : `/mcp/${view}`;
  const entry = { name, url: `${address.replace(/\/+(mcp\/*)?$/, '')}${path}` };
  const setups = ALL_CLIENT_SETUPS.filter(({ id }) => client === undefined || id === client);
  if (json) {
    const objects = setups.map((setup) => ({
      client: setup.id,
      title: setup.title,
      place: setup.place ?? null,
      language: setup.language,
      text: setup.render(entry),
      next: setup.next?.(entry) ?? null,
      link: setup.link?.(entry) ?? null,
    }));
    console.log(JSON.stringify(objects, undefined, 2));
  } else if (client === undefined) {
    const rows = alignColumns(setups.map(({ id, title }) => [id, title]));
    const lines = rows.map((line) => `  ${line}`);
    console.log(['Clients for postern connect CLIENT:', '', ...lines].join('\n'));
  } else
    for (const setup of setups)
      console.log(`\n${renderSetup(setup, entry).replace(/^(?=.)/gm, '  ')}\n`);
}

/** The BASE_URL of a gateway started in this folder. */
export function readBaseUrl(env: NodeJS.ProcessEnv): string {
  // An empty variable counts as unset.
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value));
  const { BASE_URL, PORT = '3000' } = { ...readEnvFile(env)?.added, ...given };
  return BASE_URL ?? `http://localhost:${PORT}`;
}

function renderSetup(setup: ClientSetup, entry: GatewayEntry) {
  const { title, place, isRemote, isUntried, link } = setup;
  const head = place === undefined ? '' : `In ${place}:\n`;
  const next = setup.next?.(entry).replaceAll('`', '');
  const notes = [
    next,
    isUntried && 'We have not tested this client: compare with its documentation.',
    isRemote && 'The gateway must be reachable from the internet.',
    link && `Or open ${link(entry)}`,
  ].filter(Boolean);
  return [styleText('bold', title), `${head}${setup.render(entry)}`, notes.join('\n')].join('\n\n');
}
