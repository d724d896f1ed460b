// §18.2: what there is for one caller, and how it is used, in one text.
import { isObject, type JsonObject } from '../../../core/json.ts';
import type { Caller, CatalogDescription, Offers } from '../../mcp/catalog/catalog.ts';
import type { UpstreamDescription } from '../upstream.ts';
import type { Access } from './access.ts';
import { cleanText } from './clean-item.ts';
import { loadPrepared } from './joined-view.ts';
import { ALL_KINDS } from './list-kinds.ts';
import type { Plan, PlannedServer } from './plan.ts';
import { LOCKED } from './prepare-list.ts';
import type { View, Who } from './view.ts';

export interface DescribeDeps {
  readonly view: View;
  readonly access: Access;
  getPlan(): Plan;
}

/** What a server may have that has not said so yet, and what one may have that comes tomorrow. */
export const ALL_OFFERS: Offers = {
  tools: true,
  prompts: true,
  resources: true,
  subscriptions: true,
  listChanges: true,
  completions: true,
  logging: true,
};

const NO_OFFERS: Offers = {
  tools: false,
  prompts: false,
  resources: false,
  subscriptions: false,
  completions: false,
  logging: false,
};

/** Bytes of the instructions, in UTF-8. */
const MAX_INSTRUCTIONS = 8_192;

export async function describeView(
  { view, access, getPlan }: DescribeDeps,
  who: Who,
  caller: Caller,
): Promise<CatalogDescription> {
  const { servers, builtIn, rules, lock, warn } = getPlan();
  const catalog = view.shown === 'joined' ? builtIn?.catalog : undefined;
  const own: CatalogDescription | undefined =
    catalog?.describe === undefined ? catalog : await catalog.describe(caller);
  const told = await Promise.all(view.listServers().map(describeServer));

  async function describeServer({ config }: { readonly config: { readonly name: string } }) {
    const planned = servers.get(config.name);
    const description = await planned?.server.describe(who.upstream);
    const instructions = planned && (await readInstructions(planned, description));
    return { name: config.name, offers: readOffers(description), instructions };
  }

  async function readInstructions(planned: PlannedServer, description?: UpstreamDescription) {
    const text = description?.instructions;
    if (typeof text !== 'string' || text.trim() === '') return undefined;
    const { name } = planned.server.config;
    const verdict = lock.check(name, 'instructions', text);
    if (verdict !== 'approved') {
      warn(name, 'instructions', undefined, LOCKED[verdict]);
      return undefined;
    }
    return rules === undefined || (await mayUseAny(planned)) ? text : undefined;
  }

  /** With rules, a server of which a caller may use nothing does not exist for it. */
  async function mayUseAny(planned: PlannedServer): Promise<boolean> {
    const lists = await Promise.all(
      ALL_KINDS.map(async (kind) => {
        const loaded = await loadPrepared(planned, kind, who);
        return loaded?.prepared.entries.some((entry) => access.mayList(kind, entry, who));
      }),
    );
    return lists.includes(true);
  }

  return {
    offers: joinOffers([own?.offers ?? NO_OFFERS, ...told.map(({ offers }) => offers)]),
    instructions: joinInstructions(own?.instructions, told, view.shown === 'joined'),
  };
}

/** Undefined members count as offered by a server that could not be asked. */
function readOffers(description: UpstreamDescription | undefined): Offers {
  if (description === undefined) return ALL_OFFERS;
  const { capabilities } = description;
  const has = (name: string) => isObject(capabilities[name]);
  return {
    tools: has('tools'),
    prompts: has('prompts'),
    resources: has('resources'),
    subscriptions: canSubscribe(capabilities),
    listChanges: true,
    completions: has('completions'),
    logging: has('logging'),
  };
}

export const canSubscribe = ({ resources }: JsonObject): boolean =>
  isObject(resources) && resources.subscribe === true;

const joinOffers = (all: readonly Offers[]): Offers => ({
  tools: all.some(({ tools }) => tools),
  prompts: all.some(({ prompts }) => prompts),
  resources: all.some(({ resources }) => resources),
  subscriptions: all.some(({ subscriptions }) => subscriptions),
  listChanges: all.some(({ listChanges }) => listChanges === true),
  completions: all.some(({ completions }) => completions),
  logging: all.some(({ logging }) => logging),
});

interface Told {
  readonly name: string;
  readonly instructions: string | undefined;
}

function joinInstructions(
  own: string | undefined,
  told: readonly Told[],
  hasHeadings: boolean,
): string | undefined {
  const sections = told.flatMap(({ name, instructions }) =>
    instructions === undefined ? [] : [{ name, text: instructions }],
  );
  let text = own ?? '';
  for (const [index, section] of sections.entries()) {
    const heading = hasHeadings ? `${text === '' ? '' : '\n\n'}## ${section.name}\n\n` : '';
    const left = MAX_INSTRUCTIONS - Buffer.byteLength(text);
    // Each gets its share of what those before it left: none can push the others out.
    const share = Math.floor(left / (sections.length - index)) - heading.length;
    const clean = cleanText(section.text.trim(), MAX_INSTRUCTIONS);
    const fitted = cutBytes(hasHeadings ? lowerHeadings(clean) : clean, share);
    if (fitted !== '') text += heading + fitted;
  }
  return text === '' ? undefined : text;
}

/** So that a server cannot speak under the heading of another. */
const lowerHeadings = (text: string): string =>
  text.replace(/^(\s{0,3})(#{1,6})(?=\s)/gm, '$1##$2');

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
