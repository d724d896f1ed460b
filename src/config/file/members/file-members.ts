// The members of the configuration file.
import { integer, oneOf } from '../../rules.ts';
import { type GatewayFile, NO_GATEWAY_FILE, type RuleConfig } from '../gateway-file.ts';
import { list } from '../shapes/collection.ts';
import { defineMember, type MemberReader, object } from '../shapes/object.ts';
import { freeText, text, trueOrFalse, wholeNumber } from '../shapes/scalar.ts';
import type { Shape } from '../shapes/shape.ts';
import { IGNORED_FILE_MEMBERS, REPLACED_FILE_MEMBERS } from './foreign-members.ts';
import { ruleShape } from './rule-members.ts';
import { serverShape } from './server-shape.ts';
import { type PlacedServer, SERVER_DEFINITION, serversShape } from './servers-shape.ts';

const SEPARATOR_PATTERN = '^[_.-]{1,8}$';
/** A shorter name keeps nothing of the tool beside its server's and the hash; a longer one no tool has (§18.2). */
const NAME_LENGTH = { min: 32, max: 128 } as const;
const NAMES = ['own', 'strict'] as const;

export interface PlacedRule {
  readonly rule: Omit<RuleConfig, 'place'>;
  readonly path: string;
  readonly line: number;
}

const placedRule: Shape<PlacedRule> = {
  schema: ruleShape.schema,
  read(node, place) {
    const rule = ruleShape.read(node, place);
    return rule && { rule, path: place.path, line: node.line };
  },
};

const EVERYONE = 'everyone';

// Whoever takes the last rule away should not give everything to everybody.
const ruleList = list(placedRule, {
  allowed:
    'a list of one rule or more. To let everybody use everything, write "everyone" in its place; to let nobody, write one with a group that nobody is in',
  isNotEmpty: true,
});

const rulesShape: Shape<readonly PlacedRule[] | typeof EVERYONE> = {
  schema: { anyOf: [{ const: EVERYONE }, ruleList.schema] },
  read: (node, place) =>
    node.kind === 'scalar' && node.value === EVERYONE ? EVERYONE : ruleList.read(node, place),
};

const fileMembers = {
  $schema: defineMember({
    name: '$schema',
    shape: freeText(),
    summary: 'Where editors find the JSON Schema of this file.',
  }),
  mcpServers: defineMember({
    name: 'mcpServers',
    shape: serversShape,
    summary:
      'The MCP servers behind the gateway, by name. Their order decides where names collide.',
  }),
  servers: defineMember({
    name: 'servers',
    shape: serversShape,
    summary: 'As mcpServers, as VS Code calls it.',
  }),
  builtIn: defineMember({
    name: 'builtIn',
    shape: trueOrFalse,
    summary: 'false takes the built-in tools, prompts and resources away.',
  }),
  separator: defineMember({
    name: 'separator',
    shape: text(
      {
        parse: (given) => (new RegExp(SEPARATOR_PATTERN).test(given) ? given : undefined),
        allowed: '1 to 8 of the characters _ - and .',
      },
      { schema: { type: 'string', pattern: SEPARATOR_PATTERN } },
    ),
    summary: 'What stands between a server’s prefix and a name of its own. The default is __.',
  }),
  maxNameLength: defineMember({
    name: 'maxNameLength',
    shape: wholeNumber(integer(NAME_LENGTH.min, NAME_LENGTH.max), NAME_LENGTH.min, NAME_LENGTH.max),
    summary:
      'The most characters of the names of tools and prompts; longer ones are cut. The default is 64; 48 suits clients that put a name of theirs in front.',
  }),
  names: defineMember({
    name: 'names',
    shape: text(oneOf(...NAMES), { schema: { enum: NAMES } }),
    summary:
      'strict: names of tools and prompts have letters, digits, _ and - alone. own, the default, leaves them as the servers write them.',
  }),
  rules: defineMember({
    name: 'rules',
    shape: rulesShape,
    summary:
      'Who may use what. With any rule, what no rule allows does not exist. "everyone" in place of the list lets everybody use everything.',
  }),
};

/** What the file says; what its servers mean to each other is not looked at yet. */
export interface FileContent
  extends Pick<GatewayFile, 'builtIn' | 'separator' | 'maxNameLength' | 'names'> {
  readonly servers: readonly PlacedServer[];
  readonly rules: readonly PlacedRule[];
  readonly meansNoRules: boolean;
}

export const fileShape: Shape<FileContent> = object({
  allowed: 'an object with mcpServers',
  members: Object.values(fileMembers),
  ignored: IGNORED_FILE_MEMBERS,
  replaced: REPLACED_FILE_MEMBERS,
  schema: { definitions: { [SERVER_DEFINITION]: serverShape.schema } },
  build(members) {
    const { read } = members;
    read(fileMembers.$schema);
    const rules = read(fileMembers.rules) ?? [];
    return {
      builtIn: read(fileMembers.builtIn) ?? NO_GATEWAY_FILE.builtIn,
      ...readNaming(members),
      servers: [...(read(fileMembers.mcpServers) ?? []), ...(read(fileMembers.servers) ?? [])],
      rules: rules === EVERYONE ? [] : rules,
      meansNoRules: rules === EVERYONE,
    };
  },
});

function readNaming({
  read,
  report,
}: MemberReader): Pick<FileContent, 'separator' | 'maxNameLength' | 'names'> {
  const separator = read(fileMembers.separator) ?? NO_GATEWAY_FILE.separator;
  const names = read(fileMembers.names) ?? NO_GATEWAY_FILE.names;
  if (names === 'strict' && separator.includes('.'))
    report('With "names": "strict" the separator has no dot. Use _ or -.', fileMembers.separator);
  const maxNameLength = read(fileMembers.maxNameLength) ?? NO_GATEWAY_FILE.maxNameLength;
  return { separator, maxNameLength, names };
}
