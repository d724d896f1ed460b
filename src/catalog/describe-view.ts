// §18.2: what there is for one caller, and how it is used.
import type { CatalogDescription, Offers } from '../mcp/catalog/catalog.ts';
import type { IdentifiedCaller } from '../mcp/catalog/served-catalog.ts';
import { TASKS } from '../mcp/protocol/revisions.ts';
import { canSubscribe, offersList } from '../mcp/upstream/description.ts';
import type { UpstreamDescription } from '../mcp/upstream/upstream.ts';
import { isObject } from '../platform/json.ts';
import { cleanForeignText } from './clean-item.ts';
import { loadPrepared } from './joined-view.ts';
import type { PlannedServer } from './plan.ts';
import { BUILT_IN } from './prepare-list.ts';
import { findBuiltIn, type ServedPath, seesSome } from './served-path.ts';
import { mayUseSome, toWho, type View, type Who } from './view.ts';

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

/** Offers that a server may have which has not said so yet, or which comes tomorrow. */
export const ALL_OFFERS = toOffers(() => true);

export async function describeView(
  path: ServedPath,
  caller: IdentifiedCaller,
): Promise<CatalogDescription> {
  const who = toWho(caller, undefined, 'told');
  const { view, getPlan } = path;
  const { servers } = getPlan();
  const own = await findBuiltIn(path)?.describe(caller);
  const told = await Promise.all(
    view.listServers().flatMap(({ name }) => {
      const planned = servers.get(name);
      return planned ? [describeServer(path, planned, who)] : [];
    }),
  );
  const ownInstructions =
    own?.instructions && (await passInstructions(path, BUILT_IN, own.instructions));
  const sections = told.flatMap(({ instructions }) => instructions ?? []);
  return {
    offers: toOffers((name) => [own, ...told].some((one) => one?.offers[name] === true)),
    instructions: joinOrReplace(view, ownInstructions, sections),
  };
}

function joinOrReplace(
  view: View,
  own: string | undefined,
  sections: readonly ServerInstructions[],
): string | undefined {
  const given = view.findConfig()?.instructions;
  if (given !== undefined) return given.trim() === '' ? undefined : given;
  return view.shown === 'joined'
    ? joinInstructions(own, sections)
    : sections.map(({ text }) => fitInstructions(text))[0];
}

const NOTHING = { offers: toOffers(() => false), instructions: undefined };

async function describeServer(path: ServedPath, planned: PlannedServer, who: Who) {
  if (!mayUseSome(path.getPlan(), planned, who)) return NOTHING;
  const description = await planned.server.lists.describe(who.upstream, who.patience);
  return {
    offers: readOffers(description),
    instructions: await readInstructions(path, planned, description, who),
  };
}

async function readInstructions(
  path: ServedPath,
  planned: PlannedServer,
  description: UpstreamDescription | undefined,
  who: Who,
): Promise<ServerInstructions | undefined> {
  const { name } = planned.server;
  const { policies, warn } = path.getPlan();
  const text = description?.instructions;
  if (typeof text !== 'string' || text.trim() === '') return undefined;
  if (path.view.findConfig()?.instructions !== undefined) return undefined;
  const hidden = policies.findHidden(name, 'instructions', text);
  if (hidden !== undefined) {
    warn(name, 'instructions', undefined, hidden);
    return undefined;
  }
  const seesAll = !policies.dependOnCaller && !path.view.isCurated;
  const maySee = seesAll || (await mayUseAny(path, planned, who));
  const passed = maySee ? await passInstructions(path, name, text) : undefined;
  return passed === undefined ? undefined : { name, text: passed };
}

/** As the guards let it be told; undefined where they do not. */
async function passInstructions(
  { getPlan }: ServedPath,
  server: string,
  text: string,
): Promise<string | undefined> {
  const { listGuards } = getPlan();
  return listGuards === undefined ? text : listGuards.passInstructions(server, text);
}

/** With rules, a server of which a caller may use nothing does not exist for it; nor does one in a view that has nothing of it. */
const mayUseAny = (path: ServedPath, planned: PlannedServer, who: Who) =>
  seesSome(path, who, async (kind) =>
    path.view.isCurated
      ? (await path.view.list(kind, who)).entries.filter(
          ({ server }) => server === planned.server.name,
        )
      : ((await loadPrepared(planned, kind, who))?.entries ?? []),
  );

function readOffers(description: UpstreamDescription | undefined): Offers {
  if (description === undefined) return ALL_OFFERS;
  const { capabilities } = description;
  const { extensions } = capabilities;
  return toOffers((name) => {
    switch (name) {
      case 'listChanges':
        return true;
      case 'subscriptions':
        return canSubscribe(capabilities);
      case 'tasks':
        return isObject(extensions) && isObject(extensions[TASKS]);
      case 'skills':
      // The gateway knows the files of a skill whose server lists no directories.
      case 'directories':
        return offersList(capabilities, 'skills');
      default:
        return isObject(capabilities[name]);
    }
  });
}

// §18.2: the instructions of several servers as one text.

interface ServerInstructions {
  /** The server's name. */
  readonly name: string;
  readonly text: string;
}

/** Bytes of all, in UTF-8. */
const MAX_BYTES = 8_192;

/** The instructions of one server, without a heading. */
const fitInstructions = (text: string): string =>
  cutBytes(cleanForeignText(text.trim(), MAX_BYTES), MAX_BYTES);

/** `own` are those of the built-in catalogue; undefined where there is nothing to say. */
function joinInstructions(
  own: string | undefined,
  sections: readonly ServerInstructions[],
): string | undefined {
  let joined = own ?? '';
  for (const [index, { name, text }] of sections.entries()) {
    const heading = `${joined === '' ? '' : '\n\n'}## ${name}\n\n`;
    // Each gets its share of what those before it left: none can push the others out.
    const share = Math.floor((MAX_BYTES - Buffer.byteLength(joined)) / (sections.length - index));
    const clean = cleanForeignText(text.trim(), MAX_BYTES);
    const fitted = cutBytes(lowerHeadings(clean), share - Buffer.byteLength(heading));
    if (fitted !== '') joined += heading + fitted;
  }
  return joined === '' ? undefined : joined;
}

/** So that a server cannot speak under the heading of another; a text that is underlined is a heading, too. */
const lowerHeadings = (text: string): string =>
  text
    .replace(/^([ \t]{0,3})(#{1,6})(?=\s|$)/gm, '$1##$2')
    .replace(/(?<=\S[^\n]*\n[ \t]{0,3})(?=(?:=+|-+)[ \t]*$)/gm, '\\');

/** A character is never cut in two. */
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
