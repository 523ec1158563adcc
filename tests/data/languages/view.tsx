import React from 'react';
import { Part } from './store';

type Props = { parts: Part[] };

/** A row of the table. */
const Row = ({ part }: { part: Part }) => <li>{part.name}</li>;

export function Shelf({ parts }: Props) {
  return <ul>{parts.map((part) => <Row part={part} />)}</ul>;
}
