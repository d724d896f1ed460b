// §18.2: the description of a path for one caller: its capabilities and instructions.

import type { CatalogDescription, Offers } from '../mcp/catalog/catalog.ts';
import type { IdentifiedCaller } from '../mcp/catalog/served-catalog.ts';
import { TASKS } from '../mcp/protocol/revisions.ts';
import { canSubscribe, offersList } from '../mcp/upstream/envelope.ts';
import type { UpstreamDescription } from '../mcp/upstream/upstream.ts';
import { isObject } from '../platform/json.ts';
import { CallerLists } from './caller-lists.ts';
import { cleanForeignText } from './clean-item.ts';
import { type PlannedServer, toWho, type Who } from './plan.ts';
import { BUILT_IN } from './prepare-list.ts';
import { findBuiltIn, type ServedPath, seesSome } from './served-path.ts';
import { mayUseSome } from './view.ts';

const toOffers = (has: (name: keyof Offers) => boolean): Offers => ({
  tools: has('tools'),
  prompts: has('prompts'),
  resources: has('resources'),
  subscriptions: has('subscriptions'),
  listChanges: has('listChanges'),
  completions: has('completions'),
  logging: has('logging'),
  skills: has('skills'),
  directories: has('directories'),
  tasks: has('tasks'),
});

/** Capabilities that a server may have without having declared them yet, or that a future server may add. */
export const ALL_OFFERS = toOffers(() => true);
const NO_OFFERS = toOffers(() => false);

export async function describeView(
  path: ServedPath,
  caller: IdentifiedCaller,
): Promise<CatalogDescription> {
  const who = toWho(caller, undefined, 'told');
  const { view, served } = path;
  const { servers } = served.current;
  const own = await findBuiltIn(path)?.describe(caller);
  const told = await Promise.all(
    view.listServers().flatMap(({ name }) => {
      const planned = servers.get(name);
      return planned ? [describeServer(path, planned, who)] : [];
    }),
  );
  const ownText = own?.instructions && (await passInstructions(path, BUILT_IN, own.instructions));
  const sections = told.flatMap(({ instructions }) => instructions ?? []);
  const joined =
    view.shown === 'joined'
      ? joinInstructions(ownText, sections)
      : // The instructions of one server, without a heading.
        sections.map(({ text }) => cutBytes(cleanText(text), MAX_BYTES))[0];
  const given = view.findConfig()?.instructions;
  const replaced = given?.trim() === '' ? undefined : given;
  return {
    offers: toOffers((name) => [own, ...told].some((one) => one?.offers[name] === true)),
    instructions: given === undefined ? joined : replaced,
  };
}

async function describeServer(
  path: ServedPath,
  planned: PlannedServer,
  who: Who,
): Promise<{ readonly offers: Offers; readonly instructions?: ServerInstructions }> {
  if (!mayUseSome(path.served.current, planned, who)) return { offers: NO_OFFERS };
  const description = await planned.server.lists.describe(who.upstream, who.patience);
  const offers = readOffers(description);
  const text = description?.instructions;
  const isReplaced = path.view.findConfig()?.instructions !== undefined;
  if (typeof text !== 'string' || text.trim() === '' || isReplaced) return { offers };
  const { name } = planned.server;
  const { policies, warn } = path.served.current;
  const hidden = policies.findHidden(name, 'instructions', text);
  if (hidden !== undefined) {
    warn(name, 'instructions', undefined, hidden);
    return { offers };
  }
  const seesAll = !policies.dependOnCaller && !path.view.isCurated;
  const maySee = seesAll || (await mayUseAny(path, planned, who));
  const passed = maySee ? await passInstructions(path, name, text) : undefined;
  return { offers, ...(passed !== undefined && { instructions: { name, text: passed } }) };
}

/** The instructions as changed by the guards; undefined if the guards refuse them. */
async function passInstructions(
  { served }: ServedPath,
  server: string,
  text: string,
): Promise<string | undefined> {
  const { listGuards } = served.current;
  return listGuards === undefined ? text : listGuards.passInstructions(server, text);
}

/**
 * With rules, a server that a caller may not use at all does not exist for that caller; neither does a server of which a view
 * contains nothing.
 */
function mayUseAny(path: ServedPath, planned: PlannedServer, who: Who): Promise<boolean> {
  const { view, served } = path;
  return seesSome(path, who, async (kind) => {
    if (view.isCurated)
      return (await view.list(kind, who)).entries.filter(
        ({ server }) => server === planned.server.name,
      );
    const { current } = served;
    return (await new CallerLists(current, current.whole, who).load(planned, kind))?.entries ?? [];
  });
}

function readOffers(description: UpstreamDescription | undefined): Offers {
  if (description === undefined) return ALL_OFFERS;
  const { capabilities } = description;
  const { extensions } = capabilities;
  const skills = offersList(capabilities, 'skills');
  return {
    ...toOffers((name) => isObject(capabilities[name])),
    listChanges: true,
    subscriptions: canSubscribe(capabilities),
    tasks: isObject(extensions) && isObject(extensions[TASKS]),
    skills,
    // If a skill's server lists no directories, the gateway still knows the skill's files.
    directories: skills,
  };
}

// §18.2: the instructions of several servers as one text.

interface ServerInstructions {
  /** The server's name. */
  readonly name: string;
  readonly text: string;
}

/** Maximum size of the joined text, in bytes of UTF-8. */
const MAX_BYTES = 8_192;

const cleanText = (text: string): string => cleanForeignText(text.trim(), MAX_BYTES);

/** `own` are the instructions of the built-in catalogue; undefined if there are none. */
function joinInstructions(
  own: string | undefined,
  sections: readonly ServerInstructions[],
): string | undefined {
  let joined = own ?? '';
  for (const [index, { name, text }] of sections.entries()) {
    const heading = `${joined === '' ? '' : '\n\n'}## ${name}\n\n`;
    // Each section gets an equal share of the remaining space, so that none can crowd out the others.
    const share = Math.floor((MAX_BYTES - Buffer.byteLength(joined)) / (sections.length - index));
    const fitted = cutBytes(lowerHeadings(cleanText(text)), share - Buffer.byteLength(heading));
    if (fitted !== '') joined += heading + fitted;
  }
  return joined === '' ? undefined : joined;
}

/** Lowers headings, so that a server cannot speak under the heading of another server; underlined text is a heading as well. */
const lowerHeadings = (text: string): string =>
  text
    .replace(/^([ \t]{0,3})(#{1,6})(?=\s|$)/gm, '$1##$2')
    .replace(/(?<=\S[^\n]*\n[ \t]{0,3})(?=(?:=+|-+)[ \t]*$)/gm, '\\');

/** Never splits a character. */
function cutBytes(text: string, max: number): string {
  if (Buffer.byteLength(text) <= max) return text;
  if (max <= ELLIPSIS_BYTES) return '';
  let bytes = ELLIPSIS_BYTES;
  let kept = '';
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > max) break;
    kept += character;
  }
  return `${kept}…`;
}

const ELLIPSIS_BYTES = 3;
