// What the official conformance tool expects of a server, written as any author would. Names and
// words are its own; nothing of this is in the product.
import { createLocalCatalog, defineSkill } from '../../../../src/index.ts';
import { askingTools } from './asking-tools.ts';
import { inputRequiredTools } from './input-required-tools.ts';
import { prompts } from './prompts.ts';
import { resources, resourceTemplates } from './resources.ts';
import { taskTools } from './task-tools.ts';
import { tools } from './tools.ts';

export const conformanceCatalog = createLocalCatalog({
  tools: [...tools, ...askingTools, ...inputRequiredTools, ...taskTools],
  prompts,
  resources,
  resourceTemplates,
  skills: [defineSkill({ folder: new URL('./skills/release-notes', import.meta.url) })],
  logging: true,
});
