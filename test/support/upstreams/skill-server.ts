// An MCP server with skills (SEP-2640), as a test says.
import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../src/platform/json.ts';
import { type Listing, type ListingServer, serveForTest } from './listing-server.ts';

/** Texts by their path below the folder of the skill; SKILL.md is made of `description`. */
interface SkillContent {
  readonly description?: string;
  readonly files?: Readonly<Record<string, string>>;
}

export interface BuiltSkill {
  readonly entry: { readonly uri: string; readonly resources: readonly object[] } & JsonObject;
  /** By URI. */
  readonly texts: ReadonlyMap<string, string>;
}

/** At `skill://<path>/SKILL.md`. */
export function buildSkill(path: string, { description, files }: SkillContent = {}): BuiltSkill {
  const root = `skill://${path}`;
  const frontmatter = {
    name: path.split('/').at(-1) ?? '',
    description: description ?? `Does ${path}.`,
  };
  const manifest = `---\nname: ${frontmatter.name}\ndescription: ${frontmatter.description}\n---\n`;
  const texts = new Map(
    Object.entries({ 'SKILL.md': manifest, ...files }).map(([name, text]) => [
      `${root}/${name}`,
      text,
    ]),
  );
  const resources = [...texts].map(([uri, text]) => ({
    uri,
    digest: `sha256:${createHash('sha256').update(text).digest('hex')}`,
    size: Buffer.byteLength(text),
  }));
  return { entry: { uri: `${root}/SKILL.md`, frontmatter, resources }, texts };
}

export interface SkillServer extends ListingServer {
  /** In place of those before. */
  setSkills(skills: readonly BuiltSkill[]): void;
}

export interface SkillServerOptions {
  readonly listing?: Partial<Listing>;
  /** Whether it lists directories itself. */
  readonly directoryRead?: boolean;
  /** Skills that it has and does not list. */
  readonly unlisted?: readonly BuiltSkill[];
}

const UNKNOWN = { error: { code: -32602, message: 'Unknown' } };

/** Closed once the test has ended. Each text that is read begins with `name`. */
export async function serveSkills(
  name: string,
  first: readonly BuiltSkill[],
  { listing = {}, directoryRead = false, unlisted = [] }: SkillServerOptions = {},
): Promise<SkillServer> {
  let skills = first;
  const all = () => [...skills, ...unlisted];
  const server = await serveForTest({
    ...listing,
    capabilities: {
      tools: {},
      resources: { listChanged: true },
      extensions: { 'io.modelcontextprotocol/skills': directoryRead ? { directoryRead } : {} },
    },
    answers: {
      'skills/list': () => ({ result: { skills: skills.map(({ entry }) => entry) } }),
      'skills/get': ({ uri }) => {
        const found = all().find(({ entry }) => entry.uri === uri);
        return found === undefined ? UNKNOWN : { result: { skill: found.entry } };
      },
      'resources/read': ({ uri }) => {
        const text = all()
          .map(({ texts }) => texts.get(String(uri)))
          .find((one) => one !== undefined);
        return text === undefined
          ? UNKNOWN
          : { result: { contents: [{ uri, text: `${name}: ${text}` }] } };
      },
      ...listing.answers,
    },
  });
  return {
    ...server,
    setSkills(next) {
      skills = next;
      server.notify('notifications/resources/list_changed');
    },
  };
}
