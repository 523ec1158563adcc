class Sorting
{
    string Plain(string value)
    {
        return value;
    }

    string SortOut(string[] values, string wanted)
    {
        foreach (var value in values)
        {
            if (value == wanted && value != "")
            {
                return Plain(value);
            }
        }
        return null;
    }
}
