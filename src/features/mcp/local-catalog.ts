// Spec §2.4–§2.7: tools, prompts and resources defined in this process.
import { DefinitionError } from '../../core/errors/definition-error.ts';
import { fail } from '../../core/errors/gateway-error.ts';
import type { Catalog } from './catalog.ts';
import type { Prompt, Resource, Tool } from './define.ts';

export interface LocalEntries {
  readonly tools?: readonly Tool[];
  readonly prompts?: readonly Prompt[];
  readonly resources?: readonly Resource[];
}

/** @throws DefinitionError when two entries share a name or URI. */
export function createLocalCatalog(entries: LocalEntries): Catalog {
  const tools = named('tool', entries.tools ?? [], ({ description }) => description.name);
  const prompts = named('prompt', entries.prompts ?? [], ({ description }) => description.name);
  const resources = named(
    'resource',
    entries.resources ?? [],
    ({ description }) => description.uri,
  );

  const toolList = descriptions(tools);
  const promptList = descriptions(prompts);
  const resourceList = descriptions(resources);

  return {
    listTools: async () => toolList,
    async callTool(name, args, context) {
      const tool = tools.get(name) ?? unknown('tool', name);
      refuse(tool.problem(args));
      return tool.run(args, context);
    },
    listPrompts: async () => promptList,
    async getPrompt(name, args, context) {
      const prompt = prompts.get(name) ?? unknown('prompt', name);
      refuse(prompt.problem(args));
      return prompt.get(args, context);
    },
    listResources: async () => resourceList,
    async readResource(uri, context) {
      const resource = resources.get(uri);
      if (resource === undefined) {
        fail('invalid_params', { details: `Unknown resource ${quoted(uri)}`, data: { uri } });
      }
      const { mimeType } = resource.description;
      return { contents: [{ uri, mimeType, ...(await resource.read(context)) }] };
    },
  };
}

function named<Entry>(kind: string, entries: readonly Entry[], nameOf: (entry: Entry) => string) {
  const byName = new Map<string, Entry>();
  for (const entry of entries) {
    const name = nameOf(entry);
    if (byName.has(name))
      throw new DefinitionError(`There are two ${kind}s with the name ${name}.`);
    byName.set(name, entry);
  }
  return byName;
}

const descriptions = <Description>(
  entries: ReadonlyMap<string, { readonly description: Description }>,
): readonly Description[] => [...entries.values()].map(({ description }) => description);

const unknown = (kind: string, name: string): never =>
  fail('invalid_params', { details: `Unknown ${kind} ${quoted(name)}` });

const quoted = (name: string) =>
  JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name);

function refuse(problem: string | undefined): void {
  if (problem !== undefined) fail('invalid_params', { details: problem });
}
