import { defineTool, requireUser } from 'postern/define';

export const approveRelease = defineTool({
  name: 'approve_release',
  description: 'Approves a release. For members of the group release-managers.',
  inputSchema: {
    type: 'object',
    properties: { release: { type: 'string' } },
    required: ['release'],
    additionalProperties: false,
  },
  run({ release }, context) {
    const { sub, name = sub, groups = [] } = requireUser(context);
    if (!groups.includes('release-managers')) {
      const text = `${name} is not in the group release-managers.`;
      return { content: [{ type: 'text', text }], isError: true };
    }
    return { content: [{ type: 'text', text: `${name} approved ${release}.` }] };
  },
});
