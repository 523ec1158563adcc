import { Component, type ComponentChild, type FunctionComponent, h } from "preact";

/** A component that is drawn again only if its properties aren't the same. */
export function memo<Props extends object>(
  draw: FunctionComponent<Props>,
  isSame: (before: Props, after: Props) => boolean = shallow,
) {
  return class extends Component<Props> {
    override shouldComponentUpdate(next: Props): boolean {
      return !isSame(this.props, next);
    }
    override render(props: Props): ComponentChild {
      return h(draw as FunctionComponent<object>, props);
    }
  };
}

function shallow<Props extends object>(before: Props, after: Props): boolean {
  const names = Object.keys(after) as (keyof Props)[];
  return names.length === Object.keys(before).length && names.every((name) => before[name] === after[name]);
}
