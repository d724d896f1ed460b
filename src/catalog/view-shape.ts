// §25.1: `views` of the configuration file.

import { freeText, text, trueOrFalse } from '../config/file/shapes/scalar.ts';
import {
  createRecordShape,
  defineMember,
  type FilePlace,
  list,
  object,
  openObject,
  placeMember,
  record,
  report,
  type Shape,
} from '../config/file/shapes/shape.ts';
import { decodeResource, NEVER_FITS } from '../mcp/catalog/resource-text.ts';
import {
  deriveServerName,
  describeTakenName,
  SERVER_CARD_PATH_NAME,
} from '../mcp/upstream/upstream-config.ts';
import { MAX_GLOB_LENGTH } from '../platform/glob.ts';
import { findNearestName } from '../platform/nearest-name.ts';
import { quote } from '../platform/text.ts';
import { BUILT_IN } from './prepare-list.ts';

/** A view, and its position in the file. */
export interface PlacedView {
  readonly view: Omit<ViewConfig, 'place'>;
  readonly place: FilePlace;
  readonly line: number;
}

const NAME_PATTERN = '^[a-z][a-z0-9-]{0,31}$';
const NAME = new RegExp(NAME_PATTERN);

const MAX_TITLE_LENGTH = 100;

/** Stands for the built-in catalogue in `servers`: no server can have this name, since server names have no capitals. */
const BUILT_IN_MEMBER = 'builtIn';

const globs = (what: string) =>
  list(
    text(
      {
        parse: (given) =>
          given !== '' && given.length <= MAX_GLOB_LENGTH && !/[\p{Cc}\p{Cs}]/u.test(given)
            ? given
            : undefined,
        allowed: `1 to ${MAX_GLOB_LENGTH} characters: ${what}, in which * is any text and ? any character`,
      },
      { minLength: 1, maxLength: MAX_GLOB_LENGTH },
    ),
    { allowed: `a list of patterns: ${what}, in which * is any text and ? any character` },
  );

const toolGlobs = globs('a tool’s name as clients of /mcp see it');

const resourceGlob: Shape<readonly string[]> = globs(
  'a resource’s URI, or a template, as clients of /mcp see it',
);

/** The globs are compared with decoded URIs, so an encoded glob matches nothing. */
const resourceGlobs: Shape<readonly string[]> = {
  schema: resourceGlob.schema,
  read(node, place) {
    const given = resourceGlob.read(node, place);
    for (const glob of given ?? []) {
      if (decodeResource(glob) === glob) continue;
      report(place, node.line, `${quote(glob)} ${NEVER_FITS}`);
    }
    return given;
  },
};

const serverName = text<string>(
  {
    parse: (given) => (given === BUILT_IN_MEMBER ? BUILT_IN : deriveServerName(given)),
    allowed: `the name of a server, or ${BUILT_IN_MEMBER} for the built-in tools`,
  },
  { pattern: '[A-Za-z0-9]' },
);

const viewMembers = {
  title: defineMember(
    'title',
    text(
      {
        parse: (given) => {
          const trimmed = given.trim();
          return trimmed !== '' && trimmed.length <= MAX_TITLE_LENGTH && !/\p{Cc}/u.test(trimmed)
            ? trimmed
            : undefined;
        },
        allowed: `a line of 1 to ${MAX_TITLE_LENGTH} characters`,
      },
      { minLength: 1, maxLength: MAX_TITLE_LENGTH },
    ),
    'The name of the view that people see. Default: its name in this file.',
  ),
  instructions: defineMember(
    'instructions',
    freeText(),
    'The instructions that clients give their model for the view, instead of those of the servers.',
  ),
  servers: defineMember(
    'servers',
    list(serverName, { allowed: 'a list of servers of this file' }),
    'The servers in the view; builtIn stands for the built-in tools, prompts and resources. Default: all of them.',
  ),
  tools: defineMember(
    'tools',
    toolGlobs,
    'The tools in the view, in this order: names as clients of /mcp see them, in which * is any text. Default: all tools of its servers.',
  ),
  prompts: defineMember(
    'prompts',
    globs('a prompt’s name as clients of /mcp see it'),
    'The prompts in the view, in this order. Default: all prompts of its servers.',
  ),
  resources: defineMember(
    'resources',
    resourceGlobs,
    'The resources in the view, in this order: URIs or templates as clients of /mcp see them. Default: all resources of its servers.',
  ),
  describe: defineMember(
    'describe',
    record(freeText(), { allowed: 'an object of descriptions by tool name' }),
    'Descriptions that replace the servers’, by the tool’s name as clients of /mcp see it.',
  ),
  search: defineMember(
    'search',
    trueOrFalse,
    'true lists three tools instead of those of the view: with them, a model finds and calls the view’s tools.',
  ),
  pinned: defineMember(
    'pinned',
    toolGlobs,
    'With "search": true, the tools that are listed in addition to the search.',
  ),
};

const viewShape: Shape<Omit<ViewConfig, 'place' | 'name'>> = object({
  allowed: 'an object with servers, tools, prompts or resources',
  members: Object.values(viewMembers),
  build({ has, read, report: reportHere }) {
    const search = read(viewMembers.search) ?? false;
    if (!search && has(viewMembers.pinned))
      reportHere(
        'Only a view with "search": true has this: without it all tools of the view are listed.',
        viewMembers.pinned,
      );
    return {
      title: read(viewMembers.title) ?? '',
      instructions: read(viewMembers.instructions),
      servers: read(viewMembers.servers),
      tools: read(viewMembers.tools),
      prompts: read(viewMembers.prompts),
      resources: read(viewMembers.resources),
      describe: read(viewMembers.describe) ?? createRecordShape([]),
      search,
      pinned: read(viewMembers.pinned) ?? [],
    };
  },
});

export const viewsShape: Shape<readonly PlacedView[]> = {
  schema: {
    type: 'object',
    propertyNames: { pattern: NAME_PATTERN },
    additionalProperties: viewShape.schema,
  },
  read(node, place) {
    const views = openObject(node, place, 'an object of views by name');
    return views?.members.flatMap(({ name, line, value }) => {
      const at = placeMember(place, name);
      if (!NAME.test(name))
        report(
          at,
          line,
          'This is not a valid name of a view. It must be a lower-case letter, then up to 31 lower-case letters, digits and hyphens: it is part of a URL.',
        );
      if (name === SERVER_CARD_PATH_NAME) report(at, line, describeTakenName('view'));
      const view = viewShape.read(value, at);
      if (view === undefined) return [];
      return [{ view: { ...view, name, title: view.title || name }, place: at, line }];
    });
  },
};

/** A sentence for each server that a view names but the file does not have: the view is served without it. */
export const describeMissingServers = (
  views: readonly ViewConfig[],
  servers: readonly string[],
): readonly string[] =>
  views.flatMap(({ place, servers: named = [] }) =>
    named
      .filter((name) => name !== BUILT_IN && !servers.includes(name))
      .map((name) => {
        const nearest = findNearestName(name, servers);
        const guess = nearest === undefined ? '' : ` Did you mean ${quote(nearest)}?`;
        return `${place}: "servers" names ${quote(name)}, which is no server of this file.${guess}`;
      }),
  );

/** Names in the whole file: views and servers share one namespace, since both have paths. Reports every conflict. */
export const completeViews = (
  placed: readonly PlacedView[],
  fileName: string,
  isServer: (name: string) => boolean,
): readonly ViewConfig[] =>
  placed.map(({ view, place, line }) => {
    if (isServer(view.name))
      report(
        place,
        line,
        `A server has the name ${view.name}, too, and both would be at /mcp/${view.name}. Rename the view.`,
      );
    return { ...view, place: `${fileName}:${line}, ${place.path}` };
  });

// §25.1: the parts of the configuration file about views.

export interface ViewsConfig {
  /** In the order of the file; empty by default. */
  readonly views?: readonly ViewConfig[];
}

/** A curated part of the items that `/mcp` serves, at its own path. Names are those that clients of `/mcp` see. */
export interface ViewConfig {
  /** `[a-z][a-z0-9-]{0,31}`; no server in the file has the same name. */
  readonly name: string;
  /** The name for people; defaults to `name`. */
  readonly title: string;
  /** Replaces the servers' own instructions. */
  readonly instructions: string | undefined;
  /** Names of servers (`BUILT_IN` for the built-in catalogue); undefined for all servers and the built-in catalogue. */
  readonly servers: readonly string[] | undefined;
  /** Globs; undefined for everything on these servers. Lists follow the order of the globs. */
  readonly tools: readonly string[] | undefined;
  readonly prompts: readonly string[] | undefined;
  /** Globs for decoded URIs, and for templates. */
  readonly resources: readonly string[] | undefined;
  /** Descriptions that replace the servers' own, by the tool's name. */
  readonly describe: Readonly<Record<string, string>>;
  /** §25.3: whether tools other than the pinned ones are found by search. */
  readonly search: boolean;
  /** Globs for the tools that are listed in addition to the search tools. */
  readonly pinned: readonly string[];
  /** The position in the file, for messages: `postern.yaml:12, views.research`. */
  readonly place: string;
}
