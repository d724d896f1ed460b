// MCP: kinds of content that a revision does not have reach its clients as text.
import { isObject } from '../../../core/json.ts';
import type { Content } from '../catalog/content.ts';

/** The revision that brought each kind beside text, image and resource. */
const SINCE: Readonly<Record<string, string>> = {
  audio: '2025-03-26',
  resource_link: '2025-06-18',
};

const NEWEST_CHANGE = '2025-06-18';

/** The result as a client of `version` can read it. Versions compare as text: they are dates. */
export function inRevision(
  version: string,
  result: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  if (version >= NEWEST_CHANGE) return result;
  const { content, messages } = result;
  if (Array.isArray(content)) {
    return { ...result, content: content.map((one: Content) => readable(version, one)) };
  }
  if (!Array.isArray(messages)) return result;
  return {
    ...result,
    messages: messages.map((message: unknown) =>
      isObject(message)
        ? { ...message, content: readable(version, message.content as Content) }
        : message,
    ),
  };
}

function readable(version: string, content: Content): Content {
  if (version >= (SINCE[content.type] ?? '')) return content;
  if (content.type === 'resource_link') return { type: 'text', text: content.uri };
  if (content.type === 'audio') return { type: 'text', text: `[${content.mimeType}]` };
  return content;
}
