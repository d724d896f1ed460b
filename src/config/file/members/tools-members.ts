import { MAX_GLOB_LENGTH } from '../../../platform/glob.ts';
import type { ToolSelection } from '../gateway-file.ts';
import { createRecord, list, record } from '../shapes/collection.ts';
import { defineMember, object } from '../shapes/object.ts';
import { freeText, text } from '../shapes/scalar.ts';
import type { Shape } from '../shapes/shape.ts';

const globs = list(
  text(
    {
      parse: (given) => (isGlob(given) ? given : undefined),
      allowed: `1 to ${MAX_GLOB_LENGTH} characters: a tool’s name, in which * is any text and ? any character`,
    },
    { schema: { type: 'string', minLength: 1, maxLength: MAX_GLOB_LENGTH } },
  ),
  { allowed: 'a list of tool names, in which * is any text and ? any character' },
);

const isGlob = (glob: string): boolean => glob !== '' && glob.length <= MAX_GLOB_LENGTH;

const toolsMembers = {
  include: defineMember({
    name: 'include',
    shape: globs,
    summary: 'The tools that are served: names of the server’s own, in which * is any text.',
  }),
  exclude: defineMember({
    name: 'exclude',
    shape: globs,
    summary: 'The tools that are not served. It wins over include.',
  }),
  describe: defineMember({
    name: 'describe',
    shape: record(freeText(), { allowed: 'an object of descriptions by tool name' }),
    summary: 'Descriptions in place of the server’s, by the tool’s own name.',
  }),
};

/** All of them, as the server describes them. */
export const ALL_TOOLS: ToolSelection = {
  include: ['*'],
  exclude: [],
  describe: createRecord([]),
};

export const toolsShape: Shape<ToolSelection> = object({
  allowed: 'an object with include, exclude or describe',
  members: Object.values(toolsMembers),
  build: ({ read }) => ({
    include: read(toolsMembers.include) ?? ALL_TOOLS.include,
    exclude: read(toolsMembers.exclude) ?? ALL_TOOLS.exclude,
    describe: read(toolsMembers.describe) ?? ALL_TOOLS.describe,
  }),
});
